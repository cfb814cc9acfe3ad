"""LangChain tools and agents."""
