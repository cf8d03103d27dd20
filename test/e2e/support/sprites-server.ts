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
  /** Writes a file of the sprite, which anyone may execute. */
  readonly write: (path: string, text: string) => Promise<void>
}

/** Where the sprite has the command that `/ws/claude-stream` starts. */
export const CLAUDE_PROFILE = '/srv/workspace-api/profiles/claude'

/** The fake Sprites API with a sprite `dev`, in which sandboxd is installed. */
export async function openSpritesServer(options: FakeSpritesOptions = {}): Promise<SpritesServer> {
  const api = await openFakeSprites({ ...options, sprites: ['dev'] })
  const write = async (path: string, text: string): Promise<void> => {
    await fetch(`${api.url}/v1/sprites/dev/fs/write?path=${path}&mode=0755&mkdirParents=true`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${api.token}` },
      body: text,
    })
  }
  await write('/srv/workspace-api/sandboxd', PROGRAM)
  return {
    api,
    write,
    env: { SPRITES_BASE_URL: api.url, SPRITES_SPRITE_NAME: 'dev', SPRITES_API_TOKEN: api.token },
    [Symbol.asyncDispose]: () => api[Symbol.asyncDispose](),
  }
}
