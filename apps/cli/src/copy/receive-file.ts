import { SandwireError } from '@sandwire/protocol'
import { retryTransfer, type Transfer } from './transfer.ts'
import type { RemoteStat } from './remote-workspace.ts'

/** Takes the bytes of a file in order. */
export interface FileSink {
  readonly write: (bytes: Uint8Array) => void | Promise<void>
  /** The file is another one now: everything comes again. Throws where that cannot be. */
  readonly restart: () => void
}

/** How far a file has come, of which etag. */
interface Received {
  offset: number
  etag: string
}

function lengthOf(headers: Headers): number | undefined {
  const text = headers.get('content-length') ?? ''
  return /^[0-9]{1,16}$/.test(text) ? Number(text) : undefined
}

/** The etag as JSON has it, without quotes. */
function tagOf(headers: Headers): string | undefined {
  return /^"(.*)"$/.exec(headers.get('etag') ?? '')?.[1]
}

/** Receives a file, or the rest of it, and goes on after cuts where it was. Returns what was known of the file at its end. */
export async function receiveFile(
  transfer: Transfer,
  path: string,
  { sink, known, from }: { readonly sink: FileSink; readonly known: RemoteStat; readonly from: number },
): Promise<RemoteStat> {
  const received: Received = { offset: from, etag: known.etag }
  const restart = (): void => {
    if (received.offset === 0) return
    sink.restart()
    transfer.report.moved(-received.offset)
    received.offset = 0
  }
  await retryTransfer(
    transfer,
    () => receiveRest(transfer, path, { sink, received, restart }),
    () => received.offset,
  )
  if (received.etag === known.etag) return known
  return await retryTransfer(
    transfer,
    () => transfer.remote.stat(path),
    () => 0,
  )
}

async function receiveRest(
  { remote, report }: Transfer,
  path: string,
  {
    sink,
    received,
    restart,
  }: { readonly sink: FileSink; readonly received: Received; readonly restart: () => void },
): Promise<void> {
  const isRest = received.offset > 0
  const answer = await remote.readFile(path, isRest ? { ...received } : undefined)
  const range = /^bytes ([0-9]+)-/.exec(answer.headers.get('content-range') ?? '')?.[1]
  if (isRest && answer.status === 206 && Number(range) !== received.offset)
    throw new SandwireError(
      'version_unsupported',
      'Cannot understand the answer of the server: other bytes than asked for',
    )
  if (isRest && answer.status !== 206) restart()
  received.etag = tagOf(answer.headers) ?? received.etag
  const length = lengthOf(answer.headers)
  const end = length === undefined ? undefined : received.offset + length
  for await (const chunk of answer.bytes()) {
    await sink.write(chunk)
    received.offset += chunk.byteLength
    report.moved(chunk.byteLength)
  }
  if (end !== undefined && received.offset < end)
    throw new SandwireError('link_lost', 'The server cannot be reached: the answer broke off')
}
