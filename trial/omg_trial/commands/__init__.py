"""What `omg-trial check` prints: the trial file in sentences, and a rehearsal."""
