"""What a study file names that is not of this package: modules, installed packages, files of contexts."""
