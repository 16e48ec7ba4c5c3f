"""What can go wrong, one family a file. Each fault takes its victim, harms it, heals it and is
noted with its begin and its end."""
