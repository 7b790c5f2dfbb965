# SPDX-License-Identifier: Apache-2.0
"""Types of the module `types`, which the program need not have loaded: what it finds in sys.modules is its own."""
import sys


class _Any:
    def method(self):
        pass


CodeType = type(_Any.method.__code__)
FunctionType = type(_Any.method)
MethodType = type(_Any().method)
ModuleType = type(sys)
