// Gives the tests the address of the server, as `mock-server.ts` does.

export function setup({ provide }) {
  provide("protocolV2ServerUrl", process.env.SERVER_URL);
}
