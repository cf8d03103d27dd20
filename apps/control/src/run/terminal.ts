import { formatEvent } from '@sandwire/agent'
import { type ErrorCode, ERRORS, SandwireError } from '@sandwire/protocol'
import type { RunStore } from './store.ts'
import { typeInto } from './typed-input.ts'
import type { TypingLimit } from './typing-limit.ts'
import { recheckWhileOpen, type Watcher } from './watcher.ts'

const POLL_MS = 500
const BATCH = 200
const CLOSE_NORMAL = 1000

export interface RunTerminalDependencies {
  readonly store: RunStore
  /** Reads new events. */
  readonly refresh: () => Promise<void>
  readonly send: (text: string) => Promise<void>
  readonly interrupt: () => Promise<void>
  /** Shared by all terminals of the run. */
  readonly limit: TypingLimit
  /** Of the client. */
  readonly account: string
  readonly nowMs: () => number
  readonly sleep: (ms: number) => Promise<void>
  readonly hold: (work: Promise<unknown>) => void
  readonly watcher: Watcher
}

/** A WebSocket that shows the run as terminal text. Typed lines are messages to the agent, Ctrl-C interrupts it. */
export function openRunTerminal(deps: RunTerminalDependencies): Response {
  const { 0: client, 1: server } = new WebSocketPair()
  server.accept()
  let isOpen = true
  let line = ''
  const print = (text: string): void => {
    if (isOpen) server.send(text.replaceAll('\n', '\r\n'))
  }
  const printErrors = (work: Promise<void>): void =>
    deps.hold(work.catch((error: unknown) => print(`${SandwireError.from(error).message}\n`)))
  const refuse = (code: ErrorCode): void => {
    isOpen = false
    server.close(ERRORS[code].close, code)
  }
  const end = recheckWhileOpen(deps.watcher, () => refuse('revoked'), deps.sleep)
  server.addEventListener('close', () => {
    isOpen = false
  })
  server.addEventListener('message', (event) => {
    if (!isOpen) return
    const data = event.data as string | ArrayBuffer
    const size = typeof data === 'string' ? data.length : data.byteLength
    if (!deps.limit.takeChars(deps.account, size, deps.nowMs())) return refuse('rate_limited')
    const typed = typeInto(line, typeof data === 'string' ? data : new TextDecoder().decode(data))
    line = typed.rest
    const requests = typed.lines.length + (typed.isInterrupt ? 1 : 0)
    if (!deps.limit.takeLines(deps.account, requests, deps.nowMs())) return refuse('rate_limited')
    if (typed.echo !== '') server.send(typed.echo)
    for (const text of typed.lines) printErrors(deps.send(text))
    if (typed.isInterrupt) printErrors(deps.interrupt())
  })
  const show = async (): Promise<void> => {
    let shown = 0
    let state: string | undefined
    while (isOpen) {
      const now = deps.store.read()?.state
      if (now === undefined) break
      if (now.kind !== state && (now.kind === 'queued' || now.kind === 'preparing')) print(`[${now.kind}]\n`)
      state = now.kind
      await deps.refresh()
      const batch = deps.store.events(shown, BATCH)
      for (const entry of batch) print(formatEvent(entry))
      shown = batch.at(-1)?.seq ?? shown
      if (batch.length === 0 && now.kind === 'ended') break
      if (batch.length === 0) await deps.sleep(POLL_MS)
    }
    if (isOpen) server.close(CLOSE_NORMAL)
  }
  deps.hold(
    show()
      .catch(() => server.close(1011))
      .finally(end),
  )
  return new Response(null, { status: 101, webSocket: client })
}
