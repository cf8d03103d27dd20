import { openRawTcp, type RawTcp } from '@sandwire/testing'
import type { RunningHost } from './control.ts'

async function send(host: RunningHost, lines: readonly string[]): Promise<RawTcp> {
  const tcp = await openRawTcp(host)
  const head = [...lines, `Host: localhost:${host.port}`, `Authorization: ${host.headers.authorization}`]
  await tcp.write(`${head.join('\r\n')}\r\nConnection: close\r\n\r\n`)
  return tcp
}

/** A download that is paused until the test reads it. */
export interface RawDownload {
  readonly status: number
  /** The Content-Length of the response. */
  readonly length: number
  /** Reads to the end and returns the number of bytes. */
  readonly rest: () => Promise<number>
}

export async function openDownload(host: RunningHost, path: string): Promise<RawDownload> {
  const tcp = await send(host, [`GET ${path} HTTP/1.1`])
  let seen = Buffer.alloc(0)
  while (!seen.includes('\r\n\r\n')) {
    const more = await tcp.read()
    if (more === undefined) throw new Error('The connection ended before the response')
    seen = Buffer.concat([seen, more])
  }
  const end = seen.indexOf('\r\n\r\n') + 4
  const head = seen.toString('latin1', 0, end)
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1]),
    length: Number(/^content-length: (\d+)/im.exec(head)?.[1]),
    rest: async () => {
      let bytes = seen.byteLength - end
      for (let more = await tcp.read(); more !== undefined; more = await tcp.read()) bytes += more.byteLength
      return bytes
    },
  }
}

/** An upload of which only the first part is sent. */
export interface RawUpload {
  /** The response, up to the end of the connection. */
  readonly answer: () => Promise<string>
  readonly cut: () => void
}

export async function openUpload(host: RunningHost, path: string, bytes: Uint8Array): Promise<RawUpload> {
  const tcp = await send(host, [`PUT ${path} HTTP/1.1`, `Content-Length: ${bytes.byteLength * 100}`])
  await tcp.write(bytes)
  return {
    answer: async () => {
      let text = ''
      for (let more = await tcp.read(); more !== undefined; more = await tcp.read())
        text += Buffer.from(more).toString('latin1')
      return text
    },
    cut: () => tcp.reset(),
  }
}
