"""A tiny MCP server over stdio. Not counted in the lines of the programs."""

from mcp.server.fastmcp import FastMCP

server = FastMCP("weather", log_level="ERROR")


@server.tool()
def forecast(city: str) -> str:
    """The weather of tomorrow in a city."""
    return f"Tomorrow in {city}: rain, 11 degrees"


@server.tool()
def to_fahrenheit(celsius: float) -> float:
    """Convert degrees."""
    return celsius * 9 / 5 + 32


if __name__ == "__main__":
    server.run()
