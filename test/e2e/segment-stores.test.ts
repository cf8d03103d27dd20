import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { HostStore } from '../../apps/control/src/versions/host-store.ts'
import { FolderStore } from '../../apps/host/src/store/folder-store.ts'
import { serveStore } from '../../apps/host/src/store/store-server.ts'
import { createLog } from '../../apps/host/src/log.ts'
import { describeSegmentStore } from './support/segment-store-contract.ts'

describeSegmentStore('in a folder of the host', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-store-'))
  const store = new FolderStore(join(folder, 'objects'))
  await store.open()
  const socket = join(folder, 'store.sock')
  const server = serveStore({
    socket,
    store,
    folder,
    admit: () => undefined,
    log: createLog(
      () => undefined,
      () => new Date(),
    ),
  })
  const client = new HostStore((url, init) => fetch(url, { ...init, unix: socket }))
  return Object.assign(client, {
    [Symbol.asyncDispose]: async () => {
      await server.close()
      rmSync(folder, { recursive: true, force: true })
    },
  })
})
