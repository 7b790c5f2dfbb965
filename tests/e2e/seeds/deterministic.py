# SPDX-License-Identifier: Apache-2.0
import cProfile

def my_function():
    # Your code here
    pass

cProfile.run('my_function()')
