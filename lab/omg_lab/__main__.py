"""`python -m omg_lab` is the command `omg-lab`."""

from omg_lab.cli import app

if __name__ == "__main__":
    app(prog_name="omg-lab")
