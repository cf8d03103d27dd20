import path from 'node:path'
import { schema } from '@sandwire/protocol'
import { dataFolderAt } from './data-folder.ts'
import { readHolder } from './lock.ts'
import { makePrivateFolder, readPrivateFile, writePrivateFile } from './private-file.ts'
import { isRunning } from './process-identity.ts'

/** More than one user serves on a machine; the oldest entry is dropped. */
const MAX_SERVERS = 64

const serversSchema = schema.record({
  servers: schema.list(
    schema.record({ url: schema.text(2048), tokenFile: schema.text(4096) }),
    MAX_SERVERS + 1,
  ),
})

/** A server on this machine, where `sbx-stdio` finds its token. */
export interface KnownServer {
  readonly url: string
  readonly tokenFile: string
}

/** Path of the list of servers. */
export function serversFile(env: Readonly<Record<string, string | undefined>>, home: string): string {
  const given = env['XDG_CONFIG_HOME'] ?? ''
  return path.join(path.isAbsolute(given) ? given : path.join(home, '.config'), 'sandwire', 'servers.json')
}

/** The URLs of one server, the main one first. Each becomes an entry, because clients look up the exact URL. */
export interface PublishedServer {
  readonly urls: readonly string[]
  readonly tokenFile: string
}

/** Adds a server to the list and drops servers that have ended; the newest is last. */
export function addServer(
  known: readonly KnownServer[],
  { urls, tokenFile }: PublishedServer,
  isServed: (tokenFile: string) => boolean,
): readonly KnownServer[] {
  const others = dropServer(known, tokenFile).filter(
    (other) => !urls.includes(other.url) && isServed(other.tokenFile),
  )
  return [...others, ...urls.map((url) => ({ url, tokenFile }))].slice(-MAX_SERVERS)
}

function dropServer(known: readonly KnownServer[], tokenFile: string): readonly KnownServer[] {
  return known.filter((server) => server.tokenFile !== tokenFile)
}

/** True while the host with this token file runs. */
function isServed(tokenFile: string): boolean {
  const holder = readHolder(dataFolderAt(path.dirname(tokenFile)).lock)
  return holder !== undefined && isRunning(holder)
}

function readServers(file: string): readonly KnownServer[] {
  try {
    return serversSchema.decode(JSON.parse(readPrivateFile(file) ?? 'null'))?.servers ?? []
  } catch {
    // Malformed, or accessible to others: a new list is started.
    return []
  }
}

function writeServers(file: string, servers: readonly KnownServer[]): void {
  writePrivateFile(file, `${JSON.stringify({ servers }, undefined, 2)}\n`)
}

/** Adds a server to the list; throws when the file cannot be written. */
export function publishServer(file: string, server: PublishedServer): void {
  makePrivateFolder(path.dirname(file))
  writeServers(file, addServer(readServers(file), server, isServed))
}

/** Removes a server from the list. */
export function withdrawServer(file: string, tokenFile: string): void {
  const known = readServers(file)
  const left = dropServer(known, tokenFile)
  if (left.length < known.length) writeServers(file, left)
}
