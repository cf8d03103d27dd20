import { resolve } from 'node:path'
import { type FakeSprites, type FakeSpritesOptions, openFakeSprites } from '@sandwire/testing/fake-sprites'

const SANDBOXD = resolve(import.meta.dir, '../../../apps/sandboxd/src/main.ts')
/** Runs sandboxd from its source, in place of the compiled program that deploy/sandbox/deploy_workspace_service.sh installs. */
const PROGRAM = `#!/bin/sh
exec ${process.execPath} ${SANDBOXD} "$@"
`

export interface SpritesServer extends AsyncDisposable {
  readonly api: FakeSprites
  /** The host's settings for the sprite `dev`. */
  readonly env: Readonly<Record<string, string>>
}

/** The fake Sprites API with a sprite `dev`, in which sandboxd is installed. */
export async function openSpritesServer(options: FakeSpritesOptions = {}): Promise<SpritesServer> {
  const api = await openFakeSprites({ ...options, sprites: ['dev'] })
  await fetch(`${api.url}/v1/sprites/dev/fs/write?path=/srv/workspace-api/sandboxd&mode=0755`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${api.token}` },
    body: PROGRAM,
  })
  return {
    api,
    env: { SPRITES_BASE_URL: api.url, SPRITES_SPRITE_NAME: 'dev', SPRITES_API_TOKEN: api.token },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}
