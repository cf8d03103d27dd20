import { SandwireError } from '@sandwire/protocol'
import { retryTransfer, type Transfer } from './transfer.ts'
import type { RemoteStat } from './remote-workspace.ts'

/** Receives the bytes of a file in order. */
export interface FileSink {
  readonly write: (bytes: Uint8Array) => void | Promise<void>
  /** The file changed and is sent again from the start. Throws if that is not possible. */
  readonly restart: () => void
}

/** Received bytes of a version of the file. */
interface Received {
  offset: number
  etag: string
}

function lengthOf(headers: Headers): number | undefined {
  const text = headers.get('content-length') ?? ''
  return /^[0-9]{1,16}$/.test(text) ? Number(text) : undefined
}

/** The etag without quotes, as in JSON. */
function etagOf(headers: Headers): string | undefined {
  return /^"(.*)"$/.exec(headers.get('etag') ?? '')?.[1]
}

/** Receives a file from an offset, and resumes after failures. Returns the stat of the received version. */
export async function receiveFile(
  transfer: Transfer,
  path: string,
  { sink, expected, from }: { readonly sink: FileSink; readonly expected: RemoteStat; readonly from: number },
): Promise<RemoteStat> {
  const received: Received = { offset: from, etag: expected.etag }
  const restart = (): void => {
    if (received.offset === 0) return
    sink.restart()
    transfer.report.addBytes(-received.offset)
    received.offset = 0
  }
  await retryTransfer(
    transfer,
    () => receiveRest(transfer, path, { sink, received, restart }),
    () => received.offset,
  )
  if (received.etag === expected.etag) return expected
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
  const isResumed = received.offset > 0
  const response = await remote.readFile(path, isResumed ? { ...received } : undefined)
  const range = /^bytes ([0-9]+)-/.exec(response.headers.get('content-range') ?? '')?.[1]
  if (isResumed && response.status === 206 && Number(range) !== received.offset)
    throw new SandwireError(
      'version_unsupported',
      'Cannot understand the response: the server sent a different range than requested',
    )
  if (isResumed && response.status !== 206) restart()
  received.etag = etagOf(response.headers) ?? received.etag
  const length = lengthOf(response.headers)
  const end = length === undefined ? undefined : received.offset + length
  for await (const chunk of response.bytes()) {
    await sink.write(chunk)
    received.offset += chunk.byteLength
    report.addBytes(chunk.byteLength)
  }
  if (end !== undefined && received.offset < end)
    throw new SandwireError('link_lost', 'The connection broke: the response ended early')
}
