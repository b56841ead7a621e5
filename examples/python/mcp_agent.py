import asyncio
import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient

from fake import FakeModel, call

SERVER = str(Path(__file__).with_name("mcp_server.py"))


async def main() -> None:
    weather = {"transport": "stdio", "command": sys.executable, "args": [SERVER]}
    tools = await MultiServerMCPClient({"weather": weather}).get_tools()
    print("tools:", [tool.name for tool in tools])
    model = FakeModel(
        call("forecast", city="Oslo"),
        call("to_fahrenheit", celsius=11),
        "It rains in Oslo tomorrow, at 52 degrees Fahrenheit.",
    )
    agent = create_agent(model, tools)
    question = {"role": "user", "content": "Weather in Oslo tomorrow, in Fahrenheit?"}
    result = await agent.ainvoke({"messages": [question]})
    for message in result["messages"]:
        if message.text:
            print(f"{message.type}: {message.text}")


asyncio.run(main())
