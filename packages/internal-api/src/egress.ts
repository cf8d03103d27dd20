/** Header in which control names the sandbox of a request that it sends to the egress proxy of containers. */
export const SANDBOX_HEADER = 'x-sandwire-sandbox'

/** Header of the egress proxy's own responses: the status, or `blocked:REASON`. Responses of targets never have it. */
export const EGRESS_PROXY_HEADER = 'x-sandwire-proxy'
