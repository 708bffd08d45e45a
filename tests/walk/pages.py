"""The documents' blocks, found as tests/integration/documents/blocks.rs finds them."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Block:
    page: str
    heading: str  # the nearest one above it
    language: str
    text: str
    line: int

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def blocks(repository, page):
    """All blocks of a page, in their order."""
    found, heading = [], ""
    lines = iter(enumerate((repository / page).read_text().splitlines(), 1))
    for number, line in lines:
        if title := re.fullmatch(r"#+ (.+)", line):
            heading = title[1]
        fence = re.fullmatch(r"( *)```(\w*)", line)
        if not fence:
            continue
        text = []
        for _, line in lines:
            line = line.removeprefix(fence[1])
            if line.rstrip() == "```":
                break
            text.append(line + "\n")
        else:
            raise AssertionError(f"{page}:{number}: the block doesn't end")
        found.append(Block(page, heading, fence[2], "".join(text), number))
    return found


def commands(repository, page, headings=None):
    """The blocks for a shell: of the whole page, or below these headings alone."""
    found = [it for it in blocks(repository, page) if it.language == "sh"]
    if headings is not None:
        there = {it.heading for it in found}
        assert set(headings) <= there, f"{page} has no commands below {set(headings) - there}"
        found = [it for it in found if it.heading in headings]
    assert found, page
    return found
