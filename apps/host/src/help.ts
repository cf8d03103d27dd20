import { DEFAULT_PORT } from './configuration.ts'

export const HELP = `sandwire: runs Sandwire on this machine

Usage: npx sandwire COMMAND [options]

  up         starts it: control plane, local sandboxes, one address (also: npm start)
  signin     prints a fresh sign-in link of the Sandwire that runs
  doctor     says what this machine can do and tries to break out of a throwaway sandbox
  version    prints the version

Options of up
  --port N             where to listen (${DEFAULT_PORT}; 0 picks a free port)
  --data DIR           where everything is kept (.sandwire in the current folder)
  --workspace DIR      serves this folder as the one sandbox, "local"
  --keep-sandboxes     leaves sandboxes running at the end, for the next start
  --new-token          makes a new local token; the old one stops working
  --quiet              prints the address alone

doctor and signin take --data and --workspace as up does.

Environment
  SANDWIRE_PORT, SANDWIRE_DATA     as --port and --data
  SANDWIRE_ISOLATION               bubblewrap or none; without it the best this machine has
  SANDWIRE_PROVIDER                container: sandboxes are containers of a Docker engine (DOCKER_HOST)
  SANDWIRE_IMAGE, _EGRESS_IMAGE    their image, and the one that workerd puts beside each
  SANDWIRE_BIND                    address to listen on (default: 127.0.0.1 and ::1); others need an issuer
  SANDWIRE_PUBLIC_URL              the origin that people use, with https
  SANDWIRE_EMBED_ORIGINS           origins of pages of yours that may hold a terminal, with a ticket
  SANDWIRE_TLS_CERT, _KEY          files in PEM; without them a proxy speaks TLS
  SANDWIRE_ISSUER                  who says who people are: a preset or a URL; docs/operations.md has the rest
  SANDWIRE_SETTINGS                settings file (default: settings.json in the data folder)
  JWT_SECRET, API_TOKEN            let services in; as JWT_SECRET_FILE and API_TOKEN_FILE from files
  WORKSPACE_MODE                   local: as --workspace with the current folder
`
