/** Names that hold whatever a configuration says. Must stay without the schema, which takes longer to load than most reads take. */

/** In the state directory, unless the socket is somewhere else altogether. */
export const SOCKET_NAME = 'scribe.sock';
