// These servers listen on every address, and have no setting for it. Tests are on this machine.
import { Server } from "node:net";

const HERE = "127.0.0.1";
const listen = Server.prototype.listen;

Server.prototype.listen = function (where, ...rest) {
  if (where !== null && typeof where === "object") {
    return listen.call(this, { ...where, host: HERE }, ...rest);
  }
  // A host that was given stands behind the port.
  const others = typeof rest[0] === "string" ? rest.slice(1) : rest;
  return listen.call(this, where, HERE, ...others);
};
