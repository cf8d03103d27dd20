export { liveBehavior, type SpritesBehavior } from './behavior.ts'
export {
  type FakeSprites,
  type FakeSpritesOptions,
  findFakeSpritesProblem,
  openFakeSprites,
  type SeenRequest,
} from './server.ts'
export type { FakeSprite } from './sprite.ts'
