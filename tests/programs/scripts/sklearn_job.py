# SPDX-License-Identifier: Apache-2.0
"""scikit-learn: trees in threads, a search in processes of joblib's own (loky), which are given the warnings' filters."""
import warnings

from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV


def search(features, labels):
    forest = RandomForestClassifier(5, random_state=0)
    return GridSearchCV(forest, {"max_depth": [2, 4]}, n_jobs=2, cv=3).fit(features, labels)


if __name__ == "__main__":
    warnings.filterwarnings("ignore", message="no such warning")
    features, labels = make_classification(300, random_state=0)
    forest = RandomForestClassifier(20, n_jobs=2, random_state=0).fit(features, labels)
    print(f"{forest.score(features, labels):.3f}")
    found = search(features, labels)
    print(found.best_params_, f"{found.best_score_:.3f}")
    raise SystemExit(5)
