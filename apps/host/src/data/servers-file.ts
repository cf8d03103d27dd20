import { existsSync } from 'node:fs'
import path from 'node:path'
import { shape } from '@sandwire/protocol'
import { makePrivateFolder, readPrivateFile, writePrivateFile } from './private-file.ts'

/** More servers than one user runs on a machine; the oldest makes way. */
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

/** Adds a server to a list: one entry for each address, none whose token is gone, the newest last. */
export function addServer(
  known: readonly KnownServer[],
  server: KnownServer,
  hasToken: (file: string) => boolean,
): readonly KnownServer[] {
  const others = known.filter(({ url, tokenFile }) => url !== server.url && hasToken(tokenFile))
  return [...others, server].slice(-MAX_SERVERS)
}

function readServers(file: string): readonly KnownServer[] {
  try {
    return serversShape.decode(JSON.parse(readPrivateFile(file) ?? 'null'))?.servers ?? []
  } catch {
    // Written by hand and wrong, or open to others: begun anew.
    return []
  }
}

/** Makes a server known to this user's programs; throws when the file cannot be written. */
export function publishServer(file: string, server: KnownServer): void {
  makePrivateFolder(path.dirname(file))
  const servers = addServer(readServers(file), server, existsSync)
  writePrivateFile(file, `${JSON.stringify({ servers }, undefined, 2)}\n`)
}
