import { FolderStore } from '../store/folder-store.ts'
import type { Secrets } from '../settings/secrets.ts'
import type { StoreSettings } from '../settings/store.ts'

/** Backups beside the versions of files. Names are times, so their order is that of the backups. */
export interface BackupStore {
  put(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void>
  list(): Promise<readonly string[]>
  delete(name: string): Promise<void>
}

const PREFIX = 'backups'

/** The backups in the store of versions, which is open; undefined when there is none. */
export function openBackupStore(settings: StoreSettings, secrets: Secrets): BackupStore | undefined {
  if (settings === undefined) return undefined
  return 'folder' in settings ? folderBackups(settings.folder) : bucketBackups(settings.s3, secrets)
}

function folderBackups(folder: string): BackupStore {
  const store = new FolderStore(folder)
  return {
    put: async (name, bytes) => {
      const sha256 = new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
      await store.put(`${PREFIX}/${name}`, new Blob([bytes]).stream(), {
        sizeBytes: bytes.byteLength,
        sha256,
      })
    },
    list: async () => (await store.list(PREFIX, '')).map((key) => key.slice(PREFIX.length + 1)),
    delete: (name) => store.delete(`${PREFIX}/${name}`),
  }
}

function bucketBackups(
  { endpoint, region, bucket, prefix }: Extract<StoreSettings, { s3: unknown }>['s3'],
  { awsAccessKeyId = '', awsSecretAccessKey = '' }: Secrets,
): BackupStore {
  const client = new Bun.S3Client({
    endpoint,
    region,
    bucket,
    accessKeyId: awsAccessKeyId,
    secretAccessKey: awsSecretAccessKey,
  })
  const folder = prefix === '' ? `${PREFIX}/` : `${prefix}/${PREFIX}/`
  return {
    put: async (name, bytes) => void (await client.write(folder + name, bytes)),
    list: async () => {
      const { contents = [] } = await client.list({ prefix: folder })
      return contents.map(({ key }) => key.slice(folder.length)).toSorted()
    },
    delete: (name) => client.delete(folder + name),
  }
}
