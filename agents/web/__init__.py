"""The game as a page in the browser: the server, whose games are whose, and the page itself."""
