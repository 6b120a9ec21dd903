"""What an explanation says: its facts, sentences, printed answer and table."""
