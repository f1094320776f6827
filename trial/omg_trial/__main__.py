"""`python -m omg_trial` is the command `omg-trial`."""

from omg_trial.cli import app

if __name__ == "__main__":
    app()
