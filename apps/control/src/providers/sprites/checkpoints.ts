import { SandwireError } from '@sandwire/protocol'
import type { ListedVersion } from '../../versions/version-store.ts'
import type { ProviderCheckpoints } from '../provider.ts'
import type { SpriteCheckpoint, SpritesApi } from './api.ts'

/** The API names checkpoints `v1`, `v2` and so on. */
const ID = /^v([0-9]{1,9})$/

function toVersion({ id, createdMs, comment }: SpriteCheckpoint): readonly ListedVersion[] {
  const [, digits] = ID.exec(id) ?? []
  if (digits === undefined) return []
  const name = comment === '' ? undefined : comment
  return [
    {
      number: Number(digits),
      createdMs,
      kind: 'checkpoint',
      name,
      isFuzzy: false,
      unreadable: 0,
      addedBytes: 0,
      isHeld: false,
    },
  ]
}

/** Checkpoints of sprites, also those made outside Sandwire: each has all files of its sprite. */
export function openCheckpoints(api: SpritesApi, spriteOf: (id: string) => string): ProviderCheckpoints {
  const list = async (id: string): Promise<readonly ListedVersion[]> =>
    (await api.checkpoints(spriteOf(id))).flatMap(toVersion).toSorted((a, b) => b.number - a.number)
  return {
    list,
    async create(id, name) {
      await api.checkpoint(spriteOf(id), name)
      const [made] = await list(id)
      if (made === undefined) throw new SandwireError('sandbox_failed', 'Sprites made no checkpoint')
      return made
    },
    async find(id, nameOrNumber) {
      const found = (await list(id)).find(
        ({ number, name }) => name === nameOrNumber || String(number) === nameOrNumber,
      )
      if (found !== undefined) return found
      throw new SandwireError('not_found', `No checkpoint has the name or number "${nameOrNumber}"`)
    },
    restore: (id, number) => api.restore(spriteOf(id), `v${number}`),
  }
}
