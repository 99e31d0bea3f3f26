"""Names that a file system which ignores case or Unicode normalisation takes for one."""

from __future__ import annotations

import unicodedata


class Twins:
    """Finds names that are equal to a file system that ignores case or Unicode normalisation.

    A walk visits each folder once, so only the folders on the path of the current file are kept.
    """

    def __init__(self) -> None:
        self._folders: list[str] = []
        self._seen: list[set[int]] = [set()]

    def has(self, path: str) -> bool:
        """Whether another name in the same folder, or beside one of its parent folders, is equal in that sense."""
        *folders, name = path.split("/")
        common = 0
        while common < min(len(folders), len(self._folders)) and folders[common] == self._folders[common]:
            common += 1
        del self._folders[common:], self._seen[common + 1 :]
        is_twin = False
        for folder in folders[common:]:
            is_twin = self._is_twin(folder) or is_twin
            self._folders.append(folder)
            self._seen.append(set())
        return self._is_twin(name) or is_twin

    def _is_twin(self, name: str) -> bool:
        form = hash(unicodedata.normalize("NFC", name).casefold())
        if form in self._seen[-1]:
            return True
        self._seen[-1].add(form)
        return False
