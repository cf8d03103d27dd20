import { SPRITES_PROBLEMS, type SpritesProblem } from '@sandwire/internal-api'
import { SandwireError } from '@sandwire/protocol'

/** A failure of the Sprites API. Nothing that the API sent is in its text. */
export class SpritesError extends SandwireError {
  readonly problem: SpritesProblem

  constructor(problem: SpritesProblem, cause?: unknown) {
    super('provider_unavailable', `Cannot use Sprites: ${SPRITES_PROBLEMS[problem]}`, { cause })
    this.problem = problem
  }
}
