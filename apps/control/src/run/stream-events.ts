import type { NumberedEvent } from '@sandwire/agent'
import { SandwireError } from '@sandwire/protocol'
import type { RunStreamCall } from './call.ts'
import type { RunLifecycle } from './lifecycle.ts'
import type { RunSandboxClient } from './sandbox-client.ts'
import type { RunStore } from './store.ts'
import { recheckWhileOpen, type Watcher } from './watcher.ts'

/** Between two looks at a run whose agent has not started. */
const POLL_MS = 500
/** Between two comments that keep a connection open. */
const COMMENT_MS = 15_000
/** Events in one read of the store. */
const BATCH = 200
/** Normal closure. */
const CLOSE_NORMAL = 1000

export interface EventStreamDependencies {
  readonly store: RunStore
  readonly sandbox: Pick<RunSandboxClient, 'send'>
  readonly lifecycle: Pick<RunLifecycle, 'refresh'>
  readonly addWatcher: () => Promise<Watcher>
  readonly sleep: (ms: number) => Promise<void>
}

function formatServerSentEvent(entry: NumberedEvent): string {
  return `id: ${entry.seq}\nevent: ${entry.event.type}\ndata: ${JSON.stringify(entry)}\n\n`
}

function respondStream(body: ReadableStream): Response {
  return new Response(body, { headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
}

/** What a stream is read from: the sandbox while its agent works, the store once that has ended. */
function sourceOf(store: RunStore): 'none' | 'sandbox' | 'store' {
  switch (store.read()?.state.kind) {
    case 'queued':
    case 'preparing':
      return 'none'
    case 'running':
    case 'awaiting':
    case 'stopping':
      return 'sandbox'
    case 'collecting':
    case 'ended':
    case undefined:
      return 'store'
  }
}

/** Answers with events after a sequence number, as a range, as server-sent events or through a WebSocket. */
export async function streamEvents(call: RunStreamCall, deps: EventStreamDependencies): Promise<Response> {
  const { store, sandbox, lifecycle } = deps
  const { form, after, limit } = call
  if (form === 'json') {
    await lifecycle.refresh()
    const state = store.read()?.state.kind
    return Response.json({ state, events: store.events(after, limit), lastSeq: store.lastSeq })
  }
  if (form === 'sse') return respondStream(serverSentEvents(call, deps, await deps.addWatcher()))
  const source = sourceOf(store)
  if (source === 'none') throw new SandwireError('run_not_started', 'The run has not started yet')
  if (source === 'store') return socketOfStore(store, after)
  const response = await sandbox.send({
    method: 'GET',
    path: `/events?after=${after}`,
    headers: { upgrade: 'websocket' },
    viewer: call,
  })
  if (response.status !== 101 || response.webSocket === null)
    throw new SandwireError('sandbox_unreachable', 'The sandbox does not respond')
  return response
}

/** Events of an ended run; the socket is closed after the last. */
function socketOfStore(store: RunStore, after: number): Response {
  const { 0: client, 1: server } = new WebSocketPair()
  server.accept()
  for (let batch = store.events(after, BATCH); batch.length > 0;) {
    for (const entry of batch) server.send(JSON.stringify(entry))
    batch = store.events(batch.at(-1)?.seq ?? 0, BATCH)
  }
  server.close(CLOSE_NORMAL)
  return new Response(null, { status: 101, webSocket: client })
}

/** Waits for the agent, then passes on what the sandbox sends, or sends what is stored. */
function serverSentEvents(
  call: RunStreamCall,
  deps: EventStreamDependencies,
  watcher: Watcher,
): ReadableStream<Uint8Array> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const writer = writable.getWriter()
  const write = (text: string): Promise<void> => writer.write(new TextEncoder().encode(text))
  const run = async (): Promise<void> => {
    await write(': run\n\n')
    for (let waitedMs = 0; sourceOf(deps.store) === 'none'; waitedMs += POLL_MS) {
      if (waitedMs % COMMENT_MS === 0) await write(`: ${deps.store.read()?.state.kind ?? ''}\n\n`)
      await deps.sleep(POLL_MS)
    }
    if (sourceOf(deps.store) === 'sandbox' && (await passOn(call, deps, writer))) return
    await waitForEvents(deps)
    let seq = call.after
    for (let batch = deps.store.events(seq, BATCH); batch.length > 0; batch = deps.store.events(seq, BATCH)) {
      for (const entry of batch) await write(formatServerSentEvent(entry))
      seq = batch.at(-1)?.seq ?? seq
    }
  }
  const end = recheckWhileOpen(watcher, () => void writer.abort().catch(() => undefined), deps.sleep)
  // Writes fail when the client has disconnected.
  void run()
    .catch(() => undefined)
    .finally(end)
    .then(() => writer.close())
    .catch(() => undefined)
  return readable
}

/** Waits until the events of a run that is being collected are complete. */
async function waitForEvents({ store, sleep }: EventStreamDependencies): Promise<void> {
  while (store.read()?.state.kind === 'collecting' && !store.isComplete) await sleep(POLL_MS)
}

/** Passes on the sandbox's own stream; false when it has none. */
async function passOn(
  call: RunStreamCall,
  { sandbox }: EventStreamDependencies,
  writer: WritableStreamDefaultWriter<Uint8Array>,
): Promise<boolean> {
  const response = await sandbox.send({
    method: 'GET',
    path: `/events?after=${call.after}`,
    headers: { accept: 'text/event-stream' },
    viewer: call,
  })
  if (!response.ok || response.body === null) return false
  for await (const chunk of response.body as ReadableStream<Uint8Array>) await writer.write(chunk)
  return true
}
