import { type FakeSprites, findFakeSpritesProblem } from '@sandwire/testing/fake-sprites'
import type { RunningHost } from '../../test/e2e/support/control.ts'
import path from 'node:path'
import { CLAUDE_PROFILE, openSpritesServer } from '../../test/e2e/support/sprites-server.ts'
import { createSandbox, findWorkerd, openHost } from './control-plane.ts'
import type { FilesPlace } from './workspace.ts'

/** The only sandbox of a server with one sprite. */
export const SPRITE_SANDBOX = 'default'

/** What the sprite runs in place of Claude Code. */
const FAKE_CLAUDE = path.resolve(import.meta.dir, '../../apps/control/test/support/fake-claude.ts')

/** Why sprites cannot be measured here. */
export const findSpritesProblem = findFakeSpritesProblem

/** A host whose sandbox is a sprite of the fake Sprites API, which runs in this process and adds no network latency. */
export interface SpritesHost extends FilesPlace {
  readonly api: FakeSprites
  readonly host: RunningHost
  readonly workerd: number
}

export async function openSpritesHost(): Promise<SpritesHost> {
  const sprites = await openSpritesServer()
  await sprites.write(CLAUDE_PROFILE, `#!/bin/sh\nexec '${process.execPath}' '${FAKE_CLAUDE}' "$@"\n`)
  try {
    return await openHost(
      async (host) => {
        await createSandbox(host, SPRITE_SANDBOX)
        return {
          api: sprites.api,
          host,
          workerd: findWorkerd(host),
          fetch: (tail, init) => {
            const isCompat = tail.startsWith('compat/')
            const path = isCompat ? tail.slice('compat'.length) : `/workspaces/${SPRITE_SANDBOX}/${tail}`
            return host.fetch(`/api${path}`, init)
          },
          [Symbol.asyncDispose]: async () => {
            await host.stop()
            await sprites[Symbol.asyncDispose]()
          },
        }
      },
      { env: { ...sprites.env, WORKSPACE_MODE: 'sandbox' } },
    )
  } catch (error) {
    await sprites[Symbol.asyncDispose]()
    throw error
  }
}
