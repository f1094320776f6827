"""Write the files of the current formats."""

from tests.upgrades.make import FILES, make

make(FILES)
