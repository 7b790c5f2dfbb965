/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lua with ranges around what C does for it: lua's error() leaves C functions by longjmp(), and so
 * does yield. What it prints must not depend on whether it is recorded.
 */
#include <stdio.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <sonde/record.h>

static const char *const text =
    "local function fails(n) work(n); if n % 3 == 0 then error('third', 0) end; return n end\n"
    "local good, bad = 0, 0\n"
    "for n = 1, 300 do\n"
    "  local ok = pcall(fails, n)\n"
    "  if ok then good = good + 1 else bad = bad + 1 end\n"
    "end\n"
    "local co = coroutine.wrap(function() for n = 1, 100 do pause(n) end return -1 end)\n"
    "local sum = 0\n"
    "for n = 1, 100 do sum = sum + co() end\n"
    "local ok, why = pcall(refuse)\n"
    "print(good, bad, sum, ok, why)\n";

static int work(lua_State *lua)
{
    SONDE_RANGE("work");
    lua_Integer     n = luaL_checkinteger(lua, 1);
    volatile double x = 1;

    for (int i = 0; i < 1000; i++)
        x = x * 1.0000001 + (double)n;
    return 0;
}

static int pause_here(lua_State *lua)
{
    SONDE_RANGE("pause");
    lua_settop(lua, 1);
    return lua_yield(lua, 1);
}

/* Its range is left by longjmp(). */
static int refuse(lua_State *lua)
{
    SONDE_RANGE("refuse");
    return luaL_error(lua, "refused");
}

int main(void)
{
    lua_State *lua = luaL_newstate();

    luaL_openlibs(lua);
    lua_register(lua, "work", work);
    lua_register(lua, "pause", pause_here);
    lua_register(lua, "refuse", refuse);
    for (int i = 0; i < 3; i++) {
        SONDE_RANGE("request");
        if (luaL_dostring(lua, text) != LUA_OK)
            printf("failed: %s\n", lua_tostring(lua, -1));
    }
    lua_close(lua);
    return 5;
}
