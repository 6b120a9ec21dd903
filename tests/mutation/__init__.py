"""Do the tests notice a small error in the code? See "Mutation tests" in CONTRIBUTING.md."""
