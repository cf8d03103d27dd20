import { closeSync, fstatSync, openSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import path from 'node:path'
import { schema } from '@sandwire/protocol'

type Environment = Readonly<Record<string, string | undefined>>

/** A server that was started on this machine by this user. */
export interface KnownServer {
  readonly url: string
  readonly tokenFile: string
}

export type KnownServers =
  | { readonly isOk: true; readonly servers: readonly KnownServer[] }
  | { readonly isOk: false; readonly message: string; readonly hint: string }

const MAX_SERVERS = 100
const MAX_FILE_BYTES = 64 * 1024
const WRITABLE_BY_OTHERS = 0o022

const serversSchema = schema.record({
  servers: schema.list(
    schema.record({ url: schema.text(2048), tokenFile: schema.text(4096, /^\//) }),
    MAX_SERVERS,
  ),
})

/** The file in which servers of this machine register. */
export function serversFile(env: Environment): string {
  const config = env['XDG_CONFIG_HOME']
  const folder = config?.startsWith('/') === true ? config : path.join(env['HOME'] ?? homedir(), '.config')
  return path.join(folder, 'sandwire', 'servers.json')
}

/** A file that only this user or root can have written. */
export type PrivateFile =
  | { readonly kind: 'read'; readonly text: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'refused'; readonly reason: string }

/**
 * Reads a small file, and refuses one that other users can write to. `forbidden` are mode bits that the file must not
 * have; for a secret, those for reading as well. The open file is checked, not its name.
 */
export function readPrivateFile(file: string, forbidden = WRITABLE_BY_OTHERS): PrivateFile {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') return { kind: 'absent' }
    return { kind: 'refused', reason: code === 'EACCES' ? 'permission denied' : 'it cannot be read' }
  }
  try {
    const stat = fstatSync(fd)
    const self = process.getuid?.()
    if (!stat.isFile()) return { kind: 'refused', reason: 'it is not a file' }
    if (self !== undefined && stat.uid !== self && stat.uid !== 0)
      return { kind: 'refused', reason: 'it belongs to another user' }
    if ((stat.mode & WRITABLE_BY_OTHERS) !== 0) return { kind: 'refused', reason: 'others can write to it' }
    if ((stat.mode & forbidden) !== 0) return { kind: 'refused', reason: 'others can read it' }
    if (stat.size > MAX_FILE_BYTES) return { kind: 'refused', reason: 'it is too large' }
    return { kind: 'read', text: readFileSync(fd, 'utf8') }
  } finally {
    closeSync(fd)
  }
}

function parseServers(text: string): readonly KnownServer[] | undefined {
  try {
    return serversSchema.decode(JSON.parse(text))?.servers
  } catch {
    // Not JSON: reported by the caller like any other invalid content.
    return undefined
  }
}

/** The registered servers of this machine. */
export function readKnownServers(env: Environment): KnownServers {
  const file = serversFile(env)
  const found = readPrivateFile(file)
  if (found.kind === 'absent') return { isOk: true, servers: [] }
  const servers = found.kind === 'read' ? parseServers(found.text) : undefined
  if (servers !== undefined) return { isOk: true, servers }
  const problem = found.kind === 'refused' ? found.reason : 'it has invalid content'
  return {
    isOk: false,
    message: `Cannot use "${file}": ${problem}`,
    hint: 'remove it, then restart the server: npm start',
  }
}

/** The HTTP origin of an address; `ws:` counts as `http:`. */
export function originOf(url: URL): string {
  const http = new URL(url)
  if (http.protocol === 'ws:') http.protocol = 'http:'
  if (http.protocol === 'wss:') http.protocol = 'https:'
  return http.origin
}

/** The registered server with exactly this origin. */
export function findKnown(servers: readonly KnownServer[], url: URL): KnownServer | undefined {
  const origin = originOf(url)
  return servers.find((server) => URL.canParse(server.url) && originOf(new URL(server.url)) === origin)
}
