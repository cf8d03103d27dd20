/** Why sandboxes cannot run in Fly Sprites, with what the operator can do. */
export const SPRITES_PROBLEMS = {
  bad_token: 'the API rejects the token; set SPRITES_API_TOKEN to a valid one',
  unreachable: 'the API does not respond; check SPRITES_BASE_URL and the network',
  sprite_not_found: 'the sprite does not exist; check SPRITES_SPRITE_NAME',
  bad_path:
    'sandboxd is not installed in the sprite, or does not respond; run deploy/sandbox/deploy_workspace_service.sh, and check SPRITES_WORKSPACE_SERVICE_PORT and SPRITES_WORKSPACE_SERVICE_PATH',
  version_mismatch:
    'sandboxd in the sprite has a version that this server does not support; run deploy/sandbox/deploy_workspace_service.sh',
  invalid_response: 'the API sent an invalid response; check SPRITES_BASE_URL',
} as const

export type SpritesProblem = keyof typeof SPRITES_PROBLEMS
