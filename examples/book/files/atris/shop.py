"""A shop with an HTTP API, for the page on atris: python3 shop.py HOST:PORT"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

ORDERS = {
    1001: {"id": 1001, "customer": "Ada", "status": "open", "total": 19.9},
    1002: {"id": 1002, "customer": "Bob", "status": "sent", "total": 5.0},
    1003: {"id": 1003, "customer": "Carol", "status": "open", "total": 42.5},
}


def order_at(path):
    number = path.removeprefix("/orders/")
    return ORDERS.get(int(number)) if number.isdigit() else None


class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/orders":
            status = query.removeprefix("status=")
            orders = [order for order in ORDERS.values() if status in ("", order["status"])]
            self.reply(200, orders)
        else:
            self.reply_with(order_at(path))

    def do_PUT(self):
        order = order_at(self.path)
        if order:
            order["status"] = "open"
        self.reply_with(order)

    def do_DELETE(self):
        order = order_at(self.path)
        if order:
            order["status"] = "cancelled"
        self.reply_with(order)

    def reply_with(self, order):
        self.reply(200 if order else 404, order or {"error": "no such order"})

    def reply(self, status, body):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


host, port = sys.argv[1].split(":")
HTTPServer((host, int(port)), Shop).serve_forever()
