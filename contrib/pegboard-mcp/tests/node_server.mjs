// A server on the SDK for Node, in the version 2026-07-28: `node node_server.mjs stdio`, or `http`,
// which prints its port. It runs next to the `node_modules` that has the SDK.
import { createServer } from "node:http"
import { acceptedContent, createMcpHandler, inputRequired, McpServer } from "@modelcontextprotocol/server"
import { serveStdio } from "@modelcontextprotocol/server/stdio"
import { z } from "zod"

const NAME = z.object({ name: z.string() })
const text = (content) => ({ content: [{ type: "text", text: content }] })

function made() {
  const cacheHints = { "tools/list": { ttlMs: 5000, cacheScope: "private" } }
  const options = { capabilities: { tools: { listChanged: true } }, cacheHints }
  const server = new McpServer({ name: "node", version: "1" }, options)
  server.registerTool("add", { inputSchema: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) =>
    text(String(a + b)),
  )
  server.registerTool("greet", { inputSchema: z.object({}) }, (_, context) => {
    const who = acceptedContent(context.mcpReq.inputResponses, "who", NAME)
    if (who) return text(`Hello, ${who.name}!`)
    const form = inputRequired.elicit({ message: "Who are you?", requestedSchema: NAME })
    return inputRequired({ inputRequests: { who: form } })
  })
  server.registerTool("pay", { inputSchema: z.object({}) }, (_, context) => {
    const answer = context.mcpReq.inputResponses?.payment
    if (answer) return text(answer.action)
    const page = inputRequired.elicitUrl({ message: "Pay 5 euros.", url: "https://example.com/pay" })
    return inputRequired({ inputRequests: { payment: page } })
  })
  const region = z.string().meta({ "x-mcp-header": "Region" })
  server.registerTool("shard", { inputSchema: z.object({ region }) }, (args) => text(args.region))
  server.registerTool("grow", { inputSchema: z.object({}) }, () => {
    server.registerTool("grown", { inputSchema: z.object({}) }, () => text("new"))
    return text("grown")
  })
  return server
}

async function body(request) {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks)
}

if (process.argv[2] === "stdio") serveStdio(made)
else {
  const handler = createMcpHandler(made)
  const listener = createServer(async (request, response) => {
    const { method, headers } = request
    const content = method === "POST" ? await body(request) : undefined
    const wanted = new Request(`http://127.0.0.1${request.url}`, { method, headers, body: content })
    const answer = await handler.fetch(wanted)
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    if (answer.body) for await (const chunk of answer.body) response.write(chunk)
    response.end()
  })
  listener.listen(0, "127.0.0.1", () => console.log(listener.address().port))
}
