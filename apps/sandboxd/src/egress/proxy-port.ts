/** Where processes find the proxy: the port that proxies usually have. */
export const PROXY_PORT = 3128
/** Only this sandbox's own processes can reach it. */
export const PROXY_HOST = '127.0.0.1'

const PROXY_URL = `http://${PROXY_HOST}:${PROXY_PORT}`

/** Variables by which programs find a proxy; both spellings are in use. */
export const PROXY_ENV: Readonly<Record<string, string>> = {
  HTTP_PROXY: PROXY_URL,
  HTTPS_PROXY: PROXY_URL,
  http_proxy: PROXY_URL,
  https_proxy: PROXY_URL,
  NO_PROXY: 'localhost,127.0.0.1',
  no_proxy: 'localhost,127.0.0.1',
}
