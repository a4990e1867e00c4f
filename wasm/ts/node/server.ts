/** The same for Node. */

import "./platform.js";

export * from "../server.js";
