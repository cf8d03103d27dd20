import path from 'node:path'
import { SandwireError } from '@sandwire/protocol'
import { makeBackup, restoreBackup } from '../backup/backup.ts'
import { backupName } from '../backup/scheduled-backups.ts'
import { writePrivateFile } from '../data/private-file.ts'

/** Writes a backup of a data folder into a new file; returns what to print. */
export async function backUp(dataFolder: string, file: string | undefined, cwd: string): Promise<string> {
  const nowMs = Date.now()
  const target = path.resolve(cwd, file ?? `sandwire-${backupName(nowMs)}.tar.gz`)
  if (await Bun.file(target).exists())
    throw new SandwireError('conflict', `Cannot write "${target}": it exists\nhint: name another file`)
  const { bytes, information } = await makeBackup(dataFolder, nowMs)
  writePrivateFile(target, bytes)
  return `${target}: ${information.databases} databases, ${bytes.byteLength} bytes\n`
}

/** Writes a backup into a new data folder; returns what to print. */
export async function restore(file: string, dataFolder: string, cwd: string): Promise<string> {
  const source = Bun.file(path.resolve(cwd, file))
  if (!(await source.exists()))
    throw new SandwireError('bad_request', `Cannot restore from "${file}": there is no such file`)
  const { createdMs, databases } = await restoreBackup(new Uint8Array(await source.arrayBuffer()), dataFolder)
  const time = new Date(createdMs).toISOString()
  return `${dataFolder}: ${databases} databases of ${time}. Start it with: npx sandwire up --data ${dataFolder}\n`
}
