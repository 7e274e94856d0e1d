"""BM25: which of a few hundred short documents fit some words best (pure)."""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SATURATION = 1.2
LENGTH_WEIGHT = 0.75
STEM_MIN = 4

_WORD = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\dA-Za-z_]+")


def words(text: str) -> list[str]:
    """Return the words of `text`: `getIssueURLs` and `get_issue_urls` have the same."""
    return [_stem(word.lower()) for word in _WORD.findall(text)]


@dataclass(frozen=True, slots=True)
class Ranking:
    """An index over documents. Each is a bag of words with weights: see `weighed`."""

    documents: Sequence[Mapping[str, float]]
    lengths: Sequence[float]
    mean_length: float
    holders: Mapping[str, int]
    """How many documents have each word."""

    @classmethod
    def of(cls, documents: Sequence[Mapping[str, float]]) -> "Ranking":
        """Return the index of `documents`."""
        lengths = [sum(each.values()) for each in documents]
        holders = Counter(word for each in documents for word in each)
        return cls(documents, lengths, sum(lengths) / max(1, len(lengths)) or 1.0, holders)

    def best(self, query: str) -> list[int]:
        """Return the positions of the documents that have a word of `query`, the best first."""
        asked = list(dict.fromkeys(words(query)))
        scores = {index: self._score(index, asked) for index in range(len(self.documents))}
        found = [index for index, score in scores.items() if score > 0]
        return sorted(found, key=lambda index: (-scores[index], index))

    def _score(self, index: int, asked: Sequence[str]) -> float:
        document = self.documents[index]
        norm = 1 - LENGTH_WEIGHT + LENGTH_WEIGHT * self.lengths[index] / self.mean_length
        score = 0.0
        for word in asked:
            weight = document.get(word, 0.0)
            if weight:
                share = weight * (SATURATION + 1) / (weight + SATURATION * norm)
                score += self._rarity(word) * share
        return score

    def _rarity(self, word: str) -> float:
        held = self.holders.get(word, 0)
        return math.log(1 + (len(self.documents) - held + 0.5) / (held + 0.5))


def weighed(parts: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return the bag of words of texts, each with the weight of its words."""
    bag: dict[str, float] = {}
    for text, weight in parts:
        for word in words(text):
            bag[word] = bag.get(word, 0.0) + weight
    return bag


def _stem(word: str) -> str:
    if len(word) < STEM_MIN or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-3] + "y" if word.endswith("ies") else word[:-1]
