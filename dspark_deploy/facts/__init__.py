"""What a node can tell, as plain data: one pure parser a fact. Nothing here touches a node."""
