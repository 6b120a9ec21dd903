"""Second-order effects: what two features do together beyond what each does by itself."""
