import path from 'node:path'
import { shape } from '@sandwire/protocol'
import { dataFolderAt } from './data-folder.ts'
import { readHolder } from './lock.ts'
import { makePrivateFolder, readPrivateFile, writePrivateFile } from './private-file.ts'
import { isRunning } from './process-identity.ts'

/** More addresses than one user serves on a machine; the oldest makes way. */
const MAX_SERVERS = 64

const serversShape = shape.record({
  servers: shape.list(shape.record({ url: shape.text(2048), tokenFile: shape.text(4096) }), MAX_SERVERS + 1),
})

/** A server of this machine: `sbx-stdio` finds its token here. */
export interface KnownServer {
  readonly url: string
  readonly tokenFile: string
}

/** Where this user's programs look for servers. */
export function serversFile(env: Readonly<Record<string, string | undefined>>, home: string): string {
  const given = env['XDG_CONFIG_HOME'] ?? ''
  return path.join(path.isAbsolute(given) ? given : path.join(home, '.config'), 'sandwire', 'servers.json')
}

/** The addresses of one server, the one to show first; each is an entry, because programs look for exactly theirs. */
export interface PublishedServer {
  readonly urls: readonly string[]
  readonly tokenFile: string
}

/** Adds a server to a list: one entry for each address, none whose server has ended, the newest last. */
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

/** Whether the host whose token this is runs. */
function isServed(tokenFile: string): boolean {
  const holder = readHolder(dataFolderAt(path.dirname(tokenFile)).lock)
  return holder !== undefined && isRunning(holder)
}

function readServers(file: string): readonly KnownServer[] {
  try {
    return serversShape.decode(JSON.parse(readPrivateFile(file) ?? 'null'))?.servers ?? []
  } catch {
    // Written by hand and wrong, or open to others: begun anew.
    return []
  }
}

function writeServers(file: string, servers: readonly KnownServer[]): void {
  writePrivateFile(file, `${JSON.stringify({ servers }, undefined, 2)}\n`)
}

/** Makes a server known to this user's programs; throws when the file cannot be written. */
export function publishServer(file: string, server: PublishedServer): void {
  makePrivateFolder(path.dirname(file))
  writeServers(file, addServer(readServers(file), server, isServed))
}

/** Takes a server that ends off the list. */
export function withdrawServer(file: string, tokenFile: string): void {
  const known = readServers(file)
  const left = dropServer(known, tokenFile)
  if (left.length < known.length) writeServers(file, left)
}
