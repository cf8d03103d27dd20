import { expect, test } from 'bun:test'
import { SandwireError } from '@sandwire/protocol'
import { receiveFile } from './receive-file.ts'
import type { RemoteStat, ResumePoint } from './remote-workspace.ts'
import type { Transfer } from './transfer.ts'

const STAT: RemoteStat = { kind: 'file', size: 6, mode: 0o644, mtimeMs: 0, etag: 'e' }

interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly text: string
  /** The connection breaks after the text. */
  readonly isCut?: boolean
}

/** Receives a file from a server that gives these answers, one after the other. */
async function receive(...answers: readonly Answer[]) {
  const requests: (ResumePoint | undefined)[] = []
  const log = { text: '', restarts: 0, reported: 0 }
  const remote = {
    stat: async () => ({ ...STAT, etag: 'newer' }),
    readFile: async (_path: string, resume: ResumePoint | undefined) => {
      const {
        status,
        headers = {},
        text,
        isCut = false,
      } = answers[requests.push(resume) - 1] ?? { status: 500, text: '' }
      return {
        status,
        headers: new Headers(headers),
        async *bytes() {
          yield new TextEncoder().encode(text)
          if (isCut) throw new SandwireError('link_lost', 'cut', { retryAfterMs: 0 })
        },
      }
    },
  }
  const report = { addBytes: (bytes: number) => (log.reported += bytes), stalled: () => undefined }
  const transfer = { remote, report, signal: new AbortController().signal } as unknown as Transfer
  const sink = {
    write: (bytes: Uint8Array) => void (log.text += new TextDecoder().decode(bytes)),
    restart: () => {
      log.restarts += 1
      log.text = ''
    },
  }
  const stat = await receiveFile(transfer, 'f', { sink, expected: STAT, from: 0 })
  return { ...log, requests, stat }
}

const BROKEN = { status: 200, headers: { 'content-length': '6', etag: '"e"' }, text: 'abc', isCut: true }

test('resumes at the byte at which the connection broke', async () => {
  const rest = {
    status: 206,
    headers: { 'content-range': 'bytes 3-5/6', 'content-length': '3' },
    text: 'def',
  }
  expect(await receive(BROKEN, rest)).toEqual({
    text: 'abcdef',
    restarts: 0,
    reported: 6,
    requests: [undefined, { offset: 3, etag: 'e' }],
    stat: STAT,
  })
})

test('restarts when the file changed meanwhile, and reports its bytes once', async () => {
  const whole = { status: 200, headers: { 'content-length': '3', etag: '"newer"' }, text: 'new' }
  expect(await receive(BROKEN, whole)).toMatchObject({
    text: 'new',
    restarts: 1,
    reported: 3,
    stat: { etag: 'newer' },
  })
})

test('refuses a range that it did not request', async () => {
  const other = { status: 206, headers: { 'content-range': 'bytes 2-5/6' }, text: 'cdef' }
  expect(receive(BROKEN, other)).rejects.toMatchObject({ code: 'version_unsupported' })
})

test('treats a response that ends early as a broken connection', async () => {
  const early = { status: 200, headers: { 'content-length': '6', etag: '"e"' }, text: 'abcd' }
  const rest = { status: 206, headers: { 'content-range': 'bytes 4-5/6', 'content-length': '2' }, text: 'ef' }
  expect(await receive(early, rest)).toMatchObject({ text: 'abcdef', requests: [undefined, { offset: 4 }] })
})
