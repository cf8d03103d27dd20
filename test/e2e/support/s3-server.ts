import { createHash, createHmac } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readLines } from './lines.ts'

/** The only credentials of the server. */
export const S3_KEYS = { accessKeyId: 'S3RVER', secretAccessKey: 'canary-of-the-s3-secret' }

export interface S3Server extends AsyncDisposable {
  readonly endpoint: string
  /** Folder with the stored objects. */
  readonly directory: string
}

const hmac = (key: string | Buffer, text: string): Buffer => createHmac('sha256', key).update(text).digest()
const sha256 = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** The error of a request by AWS Signature Version 4 and the checksum of its body; undefined: it is valid. */
function findProblem(request: Request, body: Uint8Array): string | undefined {
  const { pathname, searchParams, host } = new URL(request.url)
  const header = (name: string): string => (name === 'host' ? host : (request.headers.get(name) ?? ''))
  const match =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/([^,]+), SignedHeaders=([^,]+), Signature=([0-9a-f]+)$/.exec(
      header('authorization'),
    )
  const [, accessKeyId = '', scope = '', signed = '', signature] = match ?? []
  const [date = '', region = '', service = ''] = scope.split('/')
  const query = [...searchParams]
    .map((pair) => pair.map((part) => encodeURIComponent(part)).join('='))
    .toSorted()
    .join('&')
  const headers = signed.split(';').map((name) => `${name}:${header(name)}\n`)
  const payload = header('x-amz-content-sha256')
  const canonical = [request.method, pathname, query, headers.join(''), signed, payload].join('\n')
  const text = ['AWS4-HMAC-SHA256', header('x-amz-date'), scope, sha256(canonical)].join('\n')
  const dayKey = hmac(`AWS4${S3_KEYS.secretAccessKey}`, date)
  const key = hmac(hmac(hmac(dayKey, region), service), 'aws4_request')
  if (accessKeyId !== S3_KEYS.accessKeyId) return 'InvalidAccessKeyId'
  if (hmac(key, text).toString('hex') !== signature) return 'SignatureDoesNotMatch'
  if (payload !== 'UNSIGNED-PAYLOAD' && payload !== sha256(body)) return 'XAmzContentSHA256Mismatch'
  return undefined
}

/** Checks signatures and checksums, which the server behind it does not. */
function serveChecked(origin: string): Bun.Server<undefined> {
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async (request) => {
      const body = await request.bytes()
      const problem = findProblem(request, body)
      if (problem !== undefined)
        return new Response(`<Error><Code>${problem}</Code></Error>`, { status: 403 })
      const { method, headers } = request
      const { pathname, search } = new URL(request.url)
      return fetch(`${origin}${pathname}${search}`, {
        method,
        headers,
        redirect: 'manual',
        ...(body.byteLength === 0 ? {} : { body }),
      })
    },
  })
}

/** Starts a real S3-compatible server with one bucket. It runs in Node, whose HTTP server it is written for. */
export async function startS3(bucket: string): Promise<S3Server> {
  const directory = mkdtempSync(join(tmpdir(), 'sandwire-s3-'))
  const program = createRequire(import.meta.url).resolve('s3rver/bin/s3rver.js')
  const options = ['-d', directory, '-a', '127.0.0.1', '-p', '0', '--no-vhost-buckets']
  const server = Bun.spawn(['node', program, ...options, '--configure-bucket', bucket], {
    stdout: 'pipe',
    stderr: 'inherit',
  })
  let origin: string | undefined
  const lines = readLines(server.stdout)
  while (origin === undefined) {
    const { done, value } = await lines.next()
    if (done === true) throw new Error('The S3 server did not start')
    const port = /listening on .*:([0-9]+)/.exec(value)?.[1]
    if (port !== undefined) origin = `http://127.0.0.1:${port}`
  }
  // Its log lines are read, so that it never waits.
  void lines.next().then(async () => {
    for await (const _ of lines);
  })
  const checked = serveChecked(origin)
  return {
    endpoint: `http://127.0.0.1:${checked.port}`,
    directory,
    [Symbol.asyncDispose]: async () => {
      await checked.stop(true)
      server.kill()
      await server.exited
      rmSync(directory, { recursive: true, force: true })
    },
  }
}
