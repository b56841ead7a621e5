from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph

from fake import FakeModel

model = FakeModel("Cats sleep all day.")


class State(MessagesState):
    facts: list[str]


def search(state: State) -> dict:
    writer = get_stream_writer()
    for percent in [50, 100]:
        writer({"searched": percent})
    return {"facts": ["cats sleep 15 hours"]}


def answer(state: State) -> dict:
    return {"messages": [model.invoke([*state["messages"], ("user", str(state["facts"]))])]}


builder = StateGraph(State)
builder.add_node(search)
builder.add_node(answer)
builder.add_edge(START, "search")
builder.add_edge("search", "answer")
builder.add_edge("answer", END)
graph = builder.compile()

question = {"messages": [{"role": "user", "content": "What do cats do?"}]}
for mode, part in graph.stream(question, stream_mode=["values", "updates", "custom", "messages"]):
    match mode:
        case "values":
            print("values:", sorted(part), len(part["messages"]), "messages")
        case "updates":
            print("updates:", {node: list(update) for node, update in part.items()})
        case "custom":
            print("custom:", part)
        case "messages":
            token, metadata = part
            print(f"messages: {token.text!r} from {metadata['langgraph_node']}")
