import {
  INSTRUCTIONS,
  LineSplitter,
  MAX_MCP_LINE_BYTES,
  type McpEffect,
  type McpId,
  McpServer,
  TERMINAL_SERVER,
  TERMINAL_TOOLS,
} from '@sandwire/agent'
import { SOFTWARE_VERSION } from '@sandwire/protocol'
import type { Socket, UnixSocketListener } from 'bun'
import type { AsUser } from '../../processes/run-as.ts'
import { listenPrivately } from '../../unix-socket.ts'
import type { AgentTerminals } from './agent-terminals.ts'
import { runTool } from './run-tool.ts'

/** An agent starts one client, and another one when it restarts it. */
const MAX_CLIENTS = 4
/** A client that reads nothing while so much waits for it is disconnected. */
const MAX_UNSENT_BYTES = 2 * 1024 * 1024

/** Serves the terminals of a run to its agent, over a socket that only the agent's user can open. */
export class TerminalServer implements Disposable {
  readonly #listener: UnixSocketListener<Client>
  readonly #clients = new Set<Client>()

  constructor(path: string, terminals: AgentTerminals, asUser: AsUser) {
    const clients = this.#clients
    this.#listener = asUser(() =>
      listenPrivately(() =>
        Bun.listen<Client>({
          unix: path,
          socket: {
            open(socket) {
              socket.data = new Client(socket, terminals)
              if (clients.size >= MAX_CLIENTS) socket.terminate()
              else clients.add(socket.data)
            },
            data: ({ data }, bytes) => data.received(bytes),
            drain: ({ data }) => data.flush(),
            close({ data }) {
              clients.delete(data)
              data.closed()
            },
            error: ({ data }) => data.closed(),
          },
        }),
      ),
    )
  }

  [Symbol.dispose](): void {
    this.#listener.stop(true)
    for (const client of this.#clients) client.closed()
  }
}

class Client {
  readonly #socket: Socket<Client>
  readonly #terminals: AgentTerminals
  readonly #lines = new LineSplitter(MAX_MCP_LINE_BYTES)
  readonly #server = new McpServer({
    name: TERMINAL_SERVER,
    version: SOFTWARE_VERSION,
    instructions: INSTRUCTIONS,
    tools: TERMINAL_TOOLS,
  })
  readonly #calls = new Map<McpId, AbortController>()
  /** What the socket has not taken yet. */
  #unsent = Buffer.alloc(0)

  constructor(socket: Socket<Client>, terminals: AgentTerminals) {
    this.#socket = socket
    this.#terminals = terminals
  }

  received(bytes: Uint8Array): void {
    for (const { text, isCut } of this.#lines.push(bytes)) this.#perform(this.#server.line(text, isCut))
  }

  flush(): void {
    if (this.#unsent.byteLength === 0) return
    const sent = this.#socket.write(this.#unsent)
    this.#unsent = this.#unsent.subarray(Math.max(0, sent))
  }

  closed(): void {
    for (const call of this.#calls.values()) call.abort()
    this.#calls.clear()
  }

  #perform(effects: readonly McpEffect[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case 'send':
          this.#send(effect.line)
          break
        case 'call':
          void this.#call(effect)
          break
        case 'cancel':
          this.#calls.get(effect.id)?.abort()
          this.#calls.delete(effect.id)
      }
    }
  }

  async #call(call: Extract<McpEffect, { kind: 'call' }>): Promise<void> {
    const controller = new AbortController()
    this.#calls.set(call.id, controller)
    const result = await runTool(this.#terminals, call, controller.signal)
    if (this.#calls.get(call.id) === controller) this.#calls.delete(call.id)
    this.#perform(this.#server.finished(call.id, result))
  }

  #send(line: string): void {
    this.#unsent = Buffer.concat([this.#unsent, Buffer.from(`${line}\n`)])
    this.flush()
    if (this.#unsent.byteLength > MAX_UNSENT_BYTES) this.#socket.terminate()
  }
}
