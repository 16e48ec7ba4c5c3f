"""What tests of Foliot, and of what is built on it, need: a real server, databases by the dozen."""
